import type { AttemptRef } from '../../../../core/instances/instance.js'

/**
 * The attempts of this process that have a ticket, each with the shard of its key. Only the latest attempt of a run is
 * kept.
 */
export class HeldTickets {
  readonly #held = new Map<string, { readonly token: number; readonly shard: number }>()

  add({ run, token }: AttemptRef, shard: number): void {
    this.#held.set(run, { token, shard })
  }

  /** The shard of an attempt's ticket, if the attempt has one. */
  shardOf({ run, token }: AttemptRef): number | undefined {
    const ticket = this.#held.get(run)
    return ticket?.token === token ? ticket.shard : undefined
  }

  remove(attempt: AttemptRef): void {
    if (this.shardOf(attempt) !== undefined) this.#held.delete(attempt.run)
  }
}
