import { isHash, nodeHash } from "./hash.ts";
import { edgePlan, foldEdge, type NodeId } from "./plan.ts";

/** A complete subtree and its hash. It never changes again, so a store may keep it for ever. */
export interface TreeNode extends NodeId {
  hash: Uint8Array;
}

/** All that is needed to go on appending: the size and the hashes of `edgePlan(size)`, left to right. */
export interface FrontierState {
  size: number;
  edge: readonly Uint8Array[];
}

/** The growing right edge of a log's tree. Holds one hash for each bit of the size, whatever the log's length. */
export interface Frontier {
  /** The number of leaves so far. */
  readonly size: number;
  /**
   * Appends a leaf. Returns the nodes that became complete by it, from the leaf itself upwards, for the store to keep:
   * two for each leaf on average.
   */
  append(leafHash: Uint8Array): TreeNode[];
  /** The root over all leaves so far (RFC 6962 §2.1). */
  root(): Uint8Array;
  /** The state now. Taken before a batch, it is what to start again from when the batch could not be stored. */
  state(): FrontierState;
}

/**
 * Starts at a state, or with no leaves. Also known as a compact range; hashing is RFC 6962 §2.1.
 * Throws RangeError where the state's edge does not fit its size.
 */
export function createFrontier(state: FrontierState = { size: 0, edge: [] }): Frontier {
  if (edgePlan(state.size).length !== state.edge.length || !state.edge.every(isHash)) {
    throw new RangeError(`the edge does not fit a tree of ${state.size}`);
  }
  const edge = [...state.edge];
  let size = state.size;
  return {
    get size() {
      return size;
    },
    append(leafHash) {
      const nodes = completedBy(leafHash, size, edge);
      size += 1;
      return nodes;
    },
    root: () => foldEdge(edge),
    state: () => ({ size, edge: [...edge] }),
  };
}

// Adds a leaf to the edge: a node at an odd index joins the left sibling that stands at the edge's end.
function completedBy(leafHash: Uint8Array, leafIndex: number, edge: Uint8Array[]): TreeNode[] {
  let node: TreeNode = { level: 0, index: leafIndex, hash: leafHash };
  const nodes = [node];
  while (node.index % 2 === 1) {
    const left = edge.pop();
    if (!left) break;
    node = { level: node.level + 1, index: (node.index - 1) / 2, hash: nodeHash(left, node.hash) };
    nodes.push(node);
  }
  edge.push(node.hash);
  return nodes;
}
