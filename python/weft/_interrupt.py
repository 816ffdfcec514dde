"""_interrupt: Ctrl-C at a place where all is written down."""
import signal
import threading

try:
    from _signal import getsignal as _getsignal, signal as _setsignal  # those of signal take longer than a small op, for enums
except ImportError:
    from signal import getsignal as _getsignal, signal as _setsignal

_MAIN = threading.main_thread().ident


class Deferred:
    """Ctrl-C waits until what was computed is written down."""

    def __enter__(self):
        self.was = self.seen = None
        if threading.get_ident() == _MAIN:
            was = _getsignal(signal.SIGINT)
            if callable(was):
                self.was = was
                _setsignal(signal.SIGINT, self.note)

    def note(self, *given):
        self.seen = given

    def __exit__(self, *given):
        if self.was is not None:
            _setsignal(signal.SIGINT, self.was)
            if self.seen is not None:
                self.was(*self.seen)
