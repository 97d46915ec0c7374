/** What the scenarios need of a cluster of brokers. Each kind of broker has a folder with a `cluster.js` that makes one. */

/** A kind of broker, and the clients that Belfry can speak to it with. */
export interface BrokerKind {
  readonly name: string
  readonly clients: readonly string[]
  /** Several such clusters fit on a small machine at a time. */
  readonly isLight?: true
  /** Installs what is missing: servers, clients. */
  prepare(clients: readonly string[]): Promise<void>
  open(): Promise<Cluster>
}

/** Three nodes on loopback. Nodes are named; a node keeps its address and its data when it is started again. */
export interface Cluster {
  readonly nodes: readonly string[]
  /** The node that has the say over this destination now. */
  leaderOf(destination: string): Promise<string>
  /** SIGTERM, and waits until the process has ended. */
  terminate(node: string): Promise<void>
  /** SIGKILL, and waits until the process has ended. */
  kill(node: string): Promise<void>
  /** Starts a node that has ended, and waits until it answers. */
  start(node: string): Promise<void>
  /** SIGSTOP: connections stay open, and nothing is answered. */
  freeze(node: string): Promise<void>
  /** SIGCONT. */
  thaw(node: string): Promise<void>
  /** Waits until every node has caught up, so that the next fault meets a healthy cluster. */
  healthy(): Promise<void>
  /** A new topic, stream or queue that survives the loss of one node; answers with its name. */
  makeDestination(name: string): Promise<string>
  /** Other ways in, by name: encrypted, with a password, with a certificate. */
  readonly variants?: readonly string[]
  /** The way in that the brokers refuse, because the password is wrong. */
  readonly refusedVariant?: string
  /** How a process of Belfry makes its sink for this destination. */
  sink(client: string, destination: string, variant?: string): SinkRecipe
  /** What a schedule may ask for that the broker refuses this client for good: no such topic, a message that is too large. */
  refusals?(client: string): Promise<readonly Refusal[]>
  /** All that the destination holds, oldest first within each place, read by a client that is not Belfry's. */
  read(destination: string): Promise<readonly Arrived[]>
  /** Ends all nodes and removes their data. */
  stop(): Promise<void>
}

export interface Refusal {
  readonly name: string
  /** Options of a schedule, over those of the load. */
  readonly toOptions?: Readonly<Record<string, unknown>>
  readonly payload?: unknown
}

/** A sink as data, so that another process can make it. */
export interface SinkRecipe {
  /** The module below dist/sinks, and its factory. */
  readonly file: string
  readonly make: string
  readonly options: Readonly<Record<string, unknown>>
  /** The Node that runs the process; by default the one that runs the tests. */
  readonly runtime?: string
  readonly environment?: Readonly<Record<string, string>>
}

/** An event as the broker holds it. */
export interface Arrived {
  /** Where the broker keeps what is in order: a partition, a stream, a queue. */
  readonly place: string
  readonly key: string
  /** The bytes of the event, as text. */
  readonly body: string
  /** When the broker stored it, in epoch milliseconds; absent where the broker does not say. */
  readonly storedAt?: number
}
