#!/bin/sh
# island's hook: notes that an event of an agent came, and when. Arguments: agent, event; the agent's JSON on stdin.
#
# It prints nothing, ends well whatever happens, and keeps no text: of the payload only the fields named below, and of
# those only values that look like an identifier. Its lines go to AGENT/SESSION.jsonl beside it, one write each.
umask 077
ulimit -c 0
ulimit -f 2048 # blocks: no file grows beyond 1 or 2 MB, whatever an agent does
at=${ISLAND_AT:-$(date +%s.%N 2>/dev/null)}
case $at in
'' | *[!0-9.]*) at=$(zsh -fc 'zmodload zsh/datetime; print $EPOCHREALTIME' || date +%s) ;; # macOS has no %N
esac 2>/dev/null
{ AT=$at FOLDER=${0%/*} AGENT=$1 EVENT=$2 LC_ALL=C awk '
BEGIN {
    n = split("prompt_id turn_id generation_id agent_id agentId subagent_id tool_use_id tool_call_id tool_name toolName " \
        "notification_type details.type error error.name error_type status status.type reason source trigger id requestID " \
        "recoverable is_interrupt origin_kind origin_name", names, " ")
    for (i = 1; i <= n; i++) wanted[names[i]] = names[i]
    wanted["session_id"] = wanted["sessionId"] = wanted["conversation_id"] = wanted["sessionID"] = "session"
    says["last_assistant_message"] = says["prompt_response"] = 1
}

# A string ends at a quote that no backslash escapes: of a long one only its end is kept.
function taken(text) {
    if (length(string) + length(text) > 256) { cut = 1; string = substr(string text, length(string text) - 99) }
    else string = string text
}

function where() {
    if (depth == 1) return key[1]
    if (depth == 2 && kind[2] == "{") return key[1] "." key[2]
    if (depth == 3 && kind[2] == "[" && kind[3] == "{") return key[1] "[]." key[3]
    return ""
}

function keep(value,    name) {
    name = where()
    if (name in wanted && value != "null" && !(wanted[name] in kept) && value ~ /^[A-Za-z0-9_.:@#+-]+$/ && !cut) kept[wanted[name]] = value
    if (name ~ /^background_tasks\[\]/) task[key[3]] = value
    if (name in says) {
        while (match(value, /(\\[nrt"]|[] *_`\047)>]|\302\273|\342\200\235|\\u00[bB][bB]|\\u201[dD])$/))
            value = substr(value, 1, RSTART - 1)
        if (value ~ /(\?|\357\274\237|\330\237|\\u[fF][fF]1[fF]|\\u061[fF])$/) asks = 1
    }
}

# Between strings stand the signs of the structure, numbers and words.
function between(text,    i, c) {
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c ~ /[{[]/) {
            if (c == "[" && depth == 1 && key[1] == "background_tasks") listed = 1
            kind[++depth] = c; key[depth] = ""; naming = (c == "{"); word = ""
        }
        else if (c ~ /[]},]/) {
            if (word != "") keep(word)
            word = ""
            if (c == "}" && depth == 3 && key[1] == "background_tasks") {
                if (task["type"] !~ /^(shell|monitor)$/ && (task["status"] == "running" || !task["status"])) left++
                split("", task)
            }
            if (c != ",") depth--
            naming = (kind[depth] == "{")
        }
        else if (c == ":") naming = 0
        else if (c !~ /[ \t\r]/) word = word c
    }
}

{
    n = split($0, parts, "\"")
    for (i = 1; i <= n; i++) {
        if (!inside) between(parts[i])
        else {
            match(parts[i], /\\*$/)
            taken(parts[i])
            if (RLENGTH % 2) { taken("\""); continue }
            if (naming) key[depth] = (cut || string ~ /\./) ? "" : string
            else keep(string)
        }
        if (i < n) { inside = !inside; string = ""; cut = 0 }
    }
}

END {
    if (depth != 0 || kept["session"] !~ /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/) exit
    line = sprintf("{\"at\":%s,\"agent\":\"%s\",\"event\":\"%s\"", ENVIRON["AT"], ENVIRON["AGENT"], ENVIRON["EVENT"])
    for (name in kept) line = line sprintf(",\"%s\":\"%s\"", name, kept[name])
    if (listed) line = line ",\"left\":" (left + 0)
    if (asks) line = line ",\"asks\":true"
    print line "}" >> (ENVIRON["FOLDER"] "/" ENVIRON["AGENT"] "/" kept["session"] ".jsonl")
}'; } 2>/dev/null
exit 0
