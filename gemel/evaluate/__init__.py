"""How good an encoder is, by the protocols that published figures follow."""
