"""net_rows.py: what the rows of weft/nets.c and weft/resnet.c are."""

SIZES = {"mlp": (256, 784, 512), "cnn": (64, 16, 128), "lstm_lm": (32, 64, 65, 128, 256), "resnet18": (16,)}
WHAT = {"mlp": "a step of a perceptron, 256 images, 784-512-512-10",
        "cnn": "a step of 2 filters of 3 x 3, 16 and 32 features, and 2 dense layers, 64 images of 28 x 28",
        "lstm_lm": "a step of an LSTM of 256 over 32 x 64 letters of 65",
        "resnet18": "a step of ResNet-18, 16 images of 32 x 32"}
