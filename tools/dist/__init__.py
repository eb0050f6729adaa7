"""Makes what is published: the requirements of the layers and the bill of materials."""
