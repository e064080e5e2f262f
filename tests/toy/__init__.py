"""A family by itself, to see that a folder and one registration are all it takes: the nearest mean of a class."""

from parallel_mix.registry import Family, register

TOY = Family(
    "toy",
    "classifier by the nearest mean (toy)",
    folder="tests.toy",
    commands={"toy": ("command", "tell rows by the nearest mean of a class")},
    modules=dict.fromkeys(("file", "words", "pages", "labels", "predictions"), "results"),
    example="toy {rows} -o {output} --labels kind",
    longer="--repeat 20000",
    prediction="predict {result} {rows} -o {output} --labels kind",
)
register(TOY)
