"""recurrent_rows.py: what the rows of weft/recurrent.c are."""

SIZES = {  # batch, steps, features, hidden; as in weft/recurrent.c
    "lstm_32x64": (32, 64, 128, 256), "lstm_16x256": (16, 256, 64, 128),
    "gru_32x64": (32, 64, 128, 256), "gru_16x256": (16, 256, 64, 128),
}
SCAN = (1000, 16)  # trips, elements


def is_lstm(name):
    return name.startswith("lstm")


def flops(name):
    """Of x and the state by their weights, forward once and back twice."""
    batch, steps, features, hidden = SIZES[name]
    return 3 * 2.0 * batch * steps * (features + hidden) * (4 if is_lstm(name) else 3) * hidden


def what(name):
    batch, steps, features, hidden = SIZES[name]
    layer = "LSTM" if is_lstm(name) else "GRU"
    return f"{layer} with all gradients: {batch} x {steps}, {features} to {hidden}"
