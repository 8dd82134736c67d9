"""Speech recognition by Whisper: spectrograms, the encoder and decoder, transcription."""
from lavax.models.whisper.audio import log_mel_spectrogram
from lavax.models.whisper.settings import TranscriptionSettings
from lavax.models.whisper.transcription import Segment, Transcript, transcribe

__all__ = ["Segment", "Transcript", "TranscriptionSettings", "log_mel_spectrogram", "transcribe"]
