"""Multiple choice: which letter a response settles on."""
