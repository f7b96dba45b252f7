"""What reaches the screen besides the icon: notices, pages, and terminals brought to the front. Shell."""
