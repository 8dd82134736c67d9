"""Encoders of text: BERT and its relatives, and embeddings of sentences from them."""
