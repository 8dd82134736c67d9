"""Speech recognition by Whisper: spectrograms, the encoder and decoder, transcription."""
