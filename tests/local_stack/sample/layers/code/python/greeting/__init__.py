WORDS = "first code"
