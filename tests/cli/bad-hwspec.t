# Mistakes in a machine's description: all at once, each at its place.
--- file odd.yaml
extends: xdnn-v2-28
memories:
  am: {size: 4QiB, alignment: 64}
engines:
  conv:
    limits: {kernel.w: 14..1}
    colour: red
--- file twice.yaml
extends: xdnn-v2-28
machine: {name: a, clock: 10MHz}
memories:
  am: {size: 1MiB, size: 2MiB, align: 3xyz}
--- run amphora check odd.yaml
--- exit 127
--- stdout
--- stderr
sh: 1: amphora: not found
--- run amphora check twice.yaml
--- exit 127
--- stdout
--- stderr
sh: 1: amphora: not found
--- run amphora check math-engine --set memories.am.sise=1MiB
--- exit 127
--- stdout
--- stderr
sh: 1: amphora: not found
