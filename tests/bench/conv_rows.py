"""conv_rows.py: rows of convolutions and pooling."""
import conv_sizes


def _what(conv):
    x, w, _ = conv.shapes()
    named = lambda shape: "x".join(map(str, shape))
    if conv.is_pool:
        return f"{conv.kind} {conv.taps}x{conv.taps}, stride {conv.stride}, of {named(x)}, with its gradient"
    kind = {"conv": "", "first": "", "deep": ""}.get(conv.kind, conv.kind + " ")
    gradients = "the filter's gradient" if conv.kind == "first" else "both gradients"
    return f"{kind}conv of {named(x)} by {named(w)}, stride {conv.stride}, with {gradients}"


def make(row):
    return [row(name, _what(conv), "op", *((conv.bytes(), "B") if conv.is_pool else (conv.flops(), "FLOP")))
            for name, conv in conv_sizes.CONVS.items()]
