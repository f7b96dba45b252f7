"""What reaches the screen besides the icon: notices. Shell."""
