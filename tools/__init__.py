"""Makes what is generated and checks what is written by hand. The Makefile names each entry."""
