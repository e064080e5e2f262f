"""What the server of forked commands does once, so that they need not: it loads compiled code."""

from parallel_mix.kernels.density import field_climb, modal_em, tree_climb

modal_em.warm_up()
field_climb.warm_up()
tree_climb.warm_up()
