"""The actions: each module has some with their schemas, and a table `ACTIONS` of them."""
