//! Groups of columns that should share a leaf, and the order in which groups should meet, from a Chow–Liu tree.
//!
//! The Chow–Liu tree is the spanning tree of the columns with the largest sum of mutual information: of all trees, the
//! one that describes the joint distribution best (Chow and Liu, 1968).
//!
//! - [`clusters`]: its strongest edges, joined while a cluster has room, give leaves of dependent columns.
//! - [`tree_order`]: the tree of clusters is cut in two where it balances best, again and again. Neighbours in the order
//!   are then neighbours in the tree, so a balanced circuit over the order joins what belongs together.

use crate::recipes::column_order::Shared;

/// The edges of the spanning tree with the largest sum, by Prim's algorithm.
pub(crate) fn spanning_tree(shared: &Shared) -> Vec<(usize, usize)> {
    let count = shared.len();
    let mut edges = Vec::with_capacity(count.saturating_sub(1));
    let Some(first) = shared.first() else {
        return edges;
    };
    let mut inside = vec![false; count];
    inside[0] = true;
    let mut nearest: Vec<(f32, usize)> = first.iter().map(|&weight| (weight, 0)).collect();
    while edges.len() + 1 < count {
        let outside = (0..count).filter(|&node| !inside[node]);
        // Of equals the first, so that the tree does not depend on anything but the weights.
        let Some(next) = outside.reduce(|a, b| if nearest[b].0 > nearest[a].0 { b } else { a })
        else {
            break;
        };
        inside[next] = true;
        edges.push((nearest[next].1, next));
        for node in (0..count).filter(|&node| !inside[node]) {
            if shared[next][node] > nearest[node].0 {
                nearest[node] = (shared[next][node], next);
            }
        }
    }
    edges
}

/// Clusters of at most `max_size` columns that hang together in the tree, the strongest edges first.
pub(crate) fn clusters(shared: &Shared, max_size: usize) -> Vec<Vec<u32>> {
    let mut edges = spanning_tree(shared);
    edges.sort_by(|&(a, b), &(c, d)| shared[c][d].total_cmp(&shared[a][b])); // stable
    let mut cluster_of: Vec<usize> = (0..shared.len()).collect();
    let mut members: Vec<Vec<u32>> = (0..shared.len() as u32)
        .map(|column| vec![column])
        .collect();
    for (a, b) in edges {
        let (to, from) = (cluster_of[a], cluster_of[b]);
        if members[to].len() + members[from].len() <= max_size && shared[a][b] > 0.0 {
            let moved = std::mem::take(&mut members[from]);
            moved
                .iter()
                .for_each(|&column| cluster_of[column as usize] = to);
            members[to].extend(moved);
        }
    }
    members.retain(|columns| !columns.is_empty());
    members
}

/// Such clusters in the order in which they should meet: neighbours in the tree stay together.
pub(crate) fn ordered_clusters(shared: &Shared, max_size: usize) -> Vec<Vec<u32>> {
    let groups = clusters(shared, max_size);
    let order = tree_order(&closest(shared, &groups));
    let at = |place: u32| groups[place as usize].clone();
    order.into_iter().map(at).collect()
}

/// The dependence of groups of columns: of their closest pair.
fn closest(shared: &Shared, groups: &[Vec<u32>]) -> Shared {
    between(groups, |pairs| {
        pairs.map(|(i, j)| shared[i][j]).fold(0.0, f32::max)
    })
}

/// The dependence of groups of columns: of all their pairs in the mean.
pub(crate) fn mean(shared: &Shared, groups: &[Vec<u32>]) -> Shared {
    between(groups, |pairs| {
        let add = |(sum, count), (i, j): (usize, usize)| (sum + shared[i][j], count + 1);
        let (sum, count) = pairs.fold((0.0, 0), add);
        sum / count as f32
    })
}

/// A number for every two groups from the pairs of their columns.
fn between(
    groups: &[Vec<u32>],
    of: impl Fn(&mut dyn Iterator<Item = (usize, usize)>) -> f32,
) -> Shared {
    let mut all = vec![vec![0.0; groups.len()]; groups.len()];
    for (a, first) in groups.iter().enumerate() {
        for (b, second) in groups.iter().enumerate().filter(|(b, _)| *b != a) {
            let pairs = first
                .iter()
                .flat_map(|&i| second.iter().map(move |&j| (i, j)));
            all[a][b] = of(&mut pairs.map(|(i, j)| (i as usize, j as usize)));
        }
    }
    all
}

/// An order in which neighbours are neighbours in the spanning tree: the tree is cut at the edge that balances best,
/// then each part again.
fn tree_order(shared: &Shared) -> Vec<u32> {
    let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); shared.len()];
    for (a, b) in spanning_tree(shared) {
        neighbours[a].push(b);
        neighbours[b].push(a);
    }
    let mut order = Vec::with_capacity(shared.len());
    let mut parts: Vec<Vec<usize>> = vec![(0..shared.len()).collect()];
    while let Some(part) = parts.pop() {
        match part.len() {
            0 => {}
            1 => order.push(part[0] as u32),
            _ => {
                let (first, second) = cut(&neighbours, &part);
                parts.push(second); // a stack: the first half is taken next
                parts.push(first);
            }
        }
    }
    order
}

/// A connected part of a tree, cut in two at the edge that balances best.
fn cut(neighbours: &[Vec<usize>], part: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let walk = Walk::new(neighbours, part);
    let half = part.len() / 2;
    let unbalance = |place: &usize| walk.sizes[*place].abs_diff(half);
    let below = (1..part.len()).min_by_key(unbalance).unwrap_or(1);
    // The subtree of a node of a depth-first walk is one stretch of it.
    let end = below + walk.sizes[below];
    let inside = walk.nodes[below..end].to_vec();
    let outside = [&walk.nodes[..below], &walk.nodes[end..]].concat();
    (outside, inside)
}

/// A depth-first walk through a part of a tree.
struct Walk {
    nodes: Vec<usize>,
    sizes: Vec<usize>, // of the subtree of each node, by its place in the walk
}

impl Walk {
    fn new(neighbours: &[Vec<usize>], part: &[usize]) -> Self {
        let mut here = vec![false; neighbours.len()];
        part.iter().for_each(|&node| here[node] = true);
        let mut nodes = Vec::with_capacity(part.len());
        let mut parents = Vec::with_capacity(part.len()); // by place in the walk
        let mut open = vec![(part[0], usize::MAX)];
        while let Some((node, parent)) = open.pop() {
            here[node] = false;
            let place = nodes.len();
            nodes.push(node);
            parents.push(parent);
            open.extend(
                neighbours[node]
                    .iter()
                    .filter(|&&next| here[next])
                    .map(|&next| (next, place)),
            );
        }
        let mut sizes = vec![1; nodes.len()];
        for place in (1..nodes.len()).rev() {
            sizes[parents[place]] += sizes[place];
        }
        Self { nodes, sizes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain 0 – 1 – … – n−1 whose edges grow stronger, and weak dependence elsewhere.
    fn chain(count: usize) -> Shared {
        let weight = |a: usize, b: usize| match a.abs_diff(b) {
            0 => 0.0,
            1 => 1.0 + a.min(b) as f32 * 0.01,
            far => 0.1 / far as f32,
        };
        (0..count)
            .map(|a| (0..count).map(|b| weight(a, b)).collect())
            .collect()
    }

    #[test]
    fn the_tree_of_a_chain_is_the_chain() {
        let mut edges = spanning_tree(&chain(6));
        edges
            .iter_mut()
            .for_each(|(a, b)| (*a, *b) = ((*a).min(*b), (*a).max(*b)));
        edges.sort_unstable();
        assert_eq!(edges, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]);
        assert!(spanning_tree(&Vec::new()).is_empty());
    }

    /// The largest sum of all spanning trees of four nodes, by trying all sixteen.
    #[test]
    fn no_tree_has_a_larger_sum() {
        let weights = [
            [0.0, 3.0, 1.0, 2.5],
            [3.0, 0.0, 2.0, 0.5],
            [1.0, 2.0, 0.0, 0.9],
            [2.5, 0.5, 0.9, 0.0],
        ];
        let shared: Shared = weights.iter().map(|row| row.to_vec()).collect();
        let all: Vec<(usize, usize)> = (0..4)
            .flat_map(|a| (a + 1..4).map(move |b| (a, b)))
            .collect();
        let mut best = f32::MIN;
        for chosen in 0..64u32 {
            let edges: Vec<_> = (0..6)
                .filter(|i| chosen >> i & 1 == 1)
                .map(|i| all[i])
                .collect();
            if edges.len() == 3 && is_connected(&edges) {
                best = best.max(edges.iter().map(|&(a, b)| shared[a][b]).sum());
            }
        }
        let ours: f32 = spanning_tree(&shared)
            .iter()
            .map(|&(a, b)| shared[a][b])
            .sum();
        assert_eq!(ours, best);
    }

    fn is_connected(edges: &[(usize, usize)]) -> bool {
        let mut reached = [true, false, false, false];
        for _ in 0..4 {
            for &(a, b) in edges {
                (reached[a], reached[b]) = (reached[a] || reached[b], reached[a] || reached[b]);
            }
        }
        reached == [true; 4]
    }

    #[test]
    fn clusters_take_the_strongest_edges_and_keep_to_their_size() {
        let found = clusters(&chain(6), 3);
        assert_eq!(found, [[0, 1, 2], [3, 4, 5]]);
        assert_eq!(clusters(&vec![vec![0.0; 3]; 3], 3).len(), 3); // what is independent stays apart
    }

    #[test]
    fn a_chain_is_ordered_as_it_hangs_together() {
        let order = tree_order(&chain(8));
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..8).collect::<Vec<u32>>());
        let halves: Vec<bool> = order.iter().map(|&node| node < 4).collect();
        assert!(
            halves == [[true; 4], [false; 4]].concat()
                || halves == [[false; 4], [true; 4]].concat()
        );
        for pair in order.chunks(2) {
            assert_eq!(pair[0].abs_diff(pair[1]), 1, "{order:?}");
        }
    }

    #[test]
    fn groups_depend_as_their_columns_do() {
        let groups = [vec![0, 1], vec![2]];
        assert_eq!(closest(&chain(3), &groups)[0][1], 1.01);
        assert_eq!(mean(&chain(3), &groups)[1][0], (1.01 + 0.05) / 2.0);
    }
}
