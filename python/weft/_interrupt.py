"""_interrupt: Ctrl-C: it stops a run, and waits while what was computed is written down."""
import signal
import threading

try:
    from _signal import getsignal as _getsignal, signal as _setsignal  # those of signal take longer than a small op, for enums
except ImportError:
    from signal import getsignal as _getsignal, signal as _setsignal

_MAIN = threading.main_thread().ident


def may_stop():
    """Whether Ctrl-C is to stop a run of this thread: where it raises KeyboardInterrupt there, and does nothing else."""
    return threading.get_ident() == _MAIN and _getsignal(signal.SIGINT) is signal.default_int_handler


class Deferred:
    """Ctrl-C waits until what was computed is written down."""

    def __enter__(self):
        self.was = self.seen = None
        self.may_stop = False
        if threading.get_ident() == _MAIN:
            was = _getsignal(signal.SIGINT)
            if callable(was):
                self.was, self.may_stop = was, was is signal.default_int_handler
                _setsignal(signal.SIGINT, self.note)
        return self

    def note(self, *given):
        self.seen = given

    def __exit__(self, *given):
        if self.was is not None:
            _setsignal(signal.SIGINT, self.was)
            if self.seen is not None:
                self.was(*self.seen)
