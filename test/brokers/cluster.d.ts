/** What the scenarios require of a broker cluster. Each kind of broker has a folder whose `cluster.js` starts one. */

/** A kind of broker, and the client libraries with which Belfry can reach it. */
export interface BrokerKind {
  readonly name: string
  readonly clients: readonly string[]
  /** Whether several such clusters fit on a small machine at a time. */
  readonly isLight?: true
  /** Installs missing servers and clients. */
  prepare(clients: readonly string[]): Promise<void>
  open(): Promise<Cluster>
}

/** Three nodes on loopback. Nodes have names; a restarted node keeps its address and data. */
export interface Cluster {
  readonly nodes: readonly string[]
  /** The node that currently leads this destination. */
  leaderOf(destination: string): Promise<string>
  /** Sends SIGTERM, and waits until the process has exited. */
  terminate(node: string): Promise<void>
  /** Sends SIGKILL, and waits until the process has exited. */
  kill(node: string): Promise<void>
  /** Restarts a node, and waits until it answers. */
  start(node: string): Promise<void>
  /** Sends SIGSTOP: connections stay open, and the node answers nothing. */
  freeze(node: string): Promise<void>
  /** Sends SIGCONT. */
  thaw(node: string): Promise<void>
  /** Waits until every node has caught up, so that the next fault hits a healthy cluster. */
  healthy(): Promise<void>
  /** Creates a topic, stream or queue that survives the loss of one node, and returns its name. */
  makeDestination(name: string): Promise<string>
  /** Creates a topic whose partitions are each on one node only. A frozen node stops its own partitions, and no others. */
  makeUnreplicated?(name: string): Promise<string>
  /** The places of the destination that are on this node. */
  placesOf?(node: string, destination: string): Promise<readonly string[]>
  /** Other ways to connect, by name: encrypted, with a password, with a certificate. */
  readonly variants?: readonly string[]
  /** The variant that the brokers refuse, because its password is wrong. */
  readonly refusedVariant?: string
  /** How a Belfry process makes its sink for this destination. */
  sink(client: string, destination: string, variant?: string): SinkRecipe
  /** Messages that the broker permanently refuses from this client: for a missing topic, or too large. */
  refusals?(client: string): Promise<readonly Refusal[]>
  /** All messages of the destination, oldest first within each place, read by an independent client. */
  read(destination: string): Promise<readonly Arrived[]>
  /** Stops all nodes and removes their data. */
  stop(): Promise<void>
}

export interface Refusal {
  readonly name: string
  /** Schedule options, merged over those of the load. */
  readonly toOptions?: Readonly<Record<string, unknown>>
  readonly payload?: unknown
}

/** A sink as data, so that another process can make it. */
export interface SinkRecipe {
  /** The module below dist/sinks, and the name of its factory. */
  readonly file: string
  readonly make: string
  readonly options: Readonly<Record<string, unknown>>
  /** The Node executable for the process; by default the one that runs the tests. */
  readonly runtime?: string
  readonly environment?: Readonly<Record<string, string>>
}

/** An event as the broker stores it. */
export interface Arrived {
  /** Where the broker keeps an order: a partition, a stream, a queue. */
  readonly place: string
  readonly key: string
  /** The body of the event as text. */
  readonly body: string
  /** When the broker stored it, in epoch milliseconds; absent where the broker does not record it. */
  readonly storedAt?: number
}
