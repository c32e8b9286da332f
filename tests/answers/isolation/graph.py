"""Knots and cycles of a directed graph: a mapping from each node to the nodes that follow it."""


def components(graph):
    """Strongly connected components of more than one node, by Tarjan's algorithm without recursion."""
    index, low, on_stack, stack, found = {}, {}, set(), [], []
    for root in list(graph):
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        work = [(root, iter(graph.get(root, ())))]
        while work:
            node, following = work[-1]
            for target in following:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(graph.get(target, ()))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                        on_stack.discard(component[-1])
                    if len(component) > 1:
                        found.append(component)
    return found


def cycle_within(graph, component):
    """A shortest cycle through the first node of a component."""
    members, start = set(component), component[0]
    previous, queue = {start: None}, [start]
    for node in queue:
        for target in graph.get(node, ()):
            if target == start:
                path = []
                while node is not None:
                    path.append(node)
                    node = previous[node]
                return path[::-1]
            if target in members and target not in previous:
                previous[target] = node
                queue.append(target)
    raise AssertionError("a component without a cycle")
