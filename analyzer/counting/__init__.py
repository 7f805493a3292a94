"""COUNT: tokens of every part of a prompt, from bytes and what the provider reported."""
