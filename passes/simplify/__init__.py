"""Rewrites a graph to a smaller one that computes the same values."""
from lavax.ir.graph import Graph
from lavax.passes.build.inline import inline_calls, with_bodies
from lavax.passes.simplify.recognise import recognise_attention, stop_cancelling_extrema
from lavax.passes.simplify.rewriting import RewriteRules, rewrite
from lavax.passes.simplify.rules import MERGING, RULES, RULES_WITHOUT_GRADIENTS

__all__ = ["MERGING", "RULES", "remove_stop_gradient", "simplify"]


def simplify(graph: Graph) -> Graph:
    """Folds constants, applies the algebraic identities, composes movements, merges equal nodes, drops dead ones,
    and recognises attention. Puts `stop_gradient` on extrema that cancel.

    The inputs and the number, order and types of the outputs stay. `simplify(simplify(graph))` prints as
    `simplify(graph)` does. Takes time linear in the number of nodes.
    """
    return stop_cancelling_extrema(_simplified(graph, RULES))


def remove_stop_gradient(graph: Graph) -> Graph:
    """Simplifies a graph that will not be differentiated any more.

    Removes `stop_gradient`, and replaces functions that have their own derivatives by their bodies. Bodies of loops and
    branches are simplified, too: those that differentiation wrote have not been before.
    """
    return _without_gradients(inline_calls(graph))


def _without_gradients(graph: Graph) -> Graph:
    return with_bodies(_simplified(graph, RULES_WITHOUT_GRADIENTS), _without_gradients)


def _simplified(graph: Graph, rules: RewriteRules) -> Graph:
    graph = rewrite(graph, rules, MERGING)
    recognised = recognise_attention(graph)
    return graph if recognised is graph else rewrite(recognised, rules, MERGING)
