"""From a point to a certificate, and the records that an answer is made of."""
