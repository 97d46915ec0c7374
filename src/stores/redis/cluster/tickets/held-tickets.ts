import type { AttemptRef } from '../../../../core/instances/instance.js'

/** Attempts that were started here by a ticket, with the shard of their key: of each run the latest. */
export class HeldTickets {
  readonly #held = new Map<string, { readonly token: number; readonly shard: number }>()

  add({ run, token }: AttemptRef, shard: number): void {
    this.#held.set(run, { token, shard })
  }

  /** In which shard an attempt has its ticket, if it has one. */
  shardOf({ run, token }: AttemptRef): number | undefined {
    const ticket = this.#held.get(run)
    return ticket?.token === token ? ticket.shard : undefined
  }

  remove(attempt: AttemptRef): void {
    if (this.shardOf(attempt) !== undefined) this.#held.delete(attempt.run)
  }
}
