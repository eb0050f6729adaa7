"""How HTTP actions show their targets who calls: fields, and what is made of them for one request."""
