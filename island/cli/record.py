"""stub"""
def add_parser(c): pass
