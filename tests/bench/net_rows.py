"""net_rows.py: what the rows of weft/nets.c, weft/resnet.c and weft/sequences.c are."""

SIZES = {"mlp": (256, 784, 512), "cnn": (64, 16, 128), "lstm_lm": (32, 64, 65, 128, 256), "resnet18": (16,),
         "experts": (16, 64, 256, 1024, 8, 2), "seq2seq": (32, 32, 32, 65, 128, 256)}
LETTERS = 65  # of experts
RING = (1, 8, 2048, 64)  # batch, heads, rows, feature
WHAT = {"mlp": "a step of a perceptron, 256 images, 784-512-512-10",
        "cnn": "a step of 2 filters of 3 x 3, 16 and 32 features, and 2 dense layers, 64 images of 28 x 28",
        "lstm_lm": "a step of an LSTM of 256 over 32 x 64 letters of 65",
        "resnet18": "a step of ResNet-18, 16 images of 32 x 32",
        "experts": "a step of 8 experts of 256 x 1024, 2 for each of 16 x 64 letters of 65",
        "seq2seq": "a step of two LSTMs of 256 with attention, 32 x 32 letters of 65 read and written"}
