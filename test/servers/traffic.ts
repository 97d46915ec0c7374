import { setImmediate } from 'node:timers/promises'

/** Counts what is under way to a server, so that virtual time can wait for it. */
export class Traffic {
  #underWay = 0
  #quiet: (() => void)[] = []

  async during<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#underWay += 1
    try {
      return await work()
    } finally {
      this.#underWay -= 1
      if (this.#underWay === 0) for (const resolve of this.#quiet.splice(0)) resolve()
    }
  }

  /** Resolves when nothing is under way, and nothing that came of it has set out either. */
  rest = async (): Promise<void> => {
    for (;;) {
      await setImmediate()
      if (this.#underWay === 0) return
      await new Promise<void>((resolve) => this.#quiet.push(resolve))
    }
  }
}
