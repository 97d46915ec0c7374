/**
 * Finds the current master through Sentinel, before each new connection. The sink drops a connection whose server no
 * longer answers or is no longer the master. So it follows a failover with any client.
 */
import { failure, quote } from '../../core/errors.js'
import { clientMaker, connectedInTime, inTime } from './clients.js'

/** A sentinel that does not answer within this time is skipped. */
const ANSWER_MS = 2_000

export type FindMaster = () => Promise<string>

/** Asks the sentinels one after the other, starting with the next one each time. */
export function masterFinder(url: unknown, sentinels: readonly unknown[], where: string): FindMaster {
  if (!Array.isArray(sentinels) || sentinels.length === 0) {
    throw failure(
      'OPTION_INVALID',
      `${where}: sentinels is ${quote(sentinels)}; name them: ['redis://sentinel-1:26379']`,
    )
  }
  if (typeof url !== 'string' || !URL.canParse(url) || new URL(url).hostname === '') {
    const hint = 'redis://orders, or redis://user:password@orders'
    throw failure('OPTION_INVALID', `${where}: with sentinels, the host of url is the name of the master: ${hint}`)
  }
  const name = decodeURIComponent(new URL(url).hostname)
  const makers = sentinels.map((each) => ({ shown: hostOf(each), make: clientMaker([each], false, where) }))
  let next = 0

  async function ask({ make }: (typeof makers)[number]): Promise<string> {
    const sentinel = await connectedInTime(make(), ANSWER_MS)
    try {
      const answer = await inTime(sentinel.send('', ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name]), ANSWER_MS)
      if (!Array.isArray(answer)) throw new Error(`it knows no master ${quote(name)}`)
      const [host, port] = answer.map(String) as [string, string]
      return Object.assign(new URL(String(url)), { host: `${host.includes(':') ? `[${host}]` : host}:${port}` }).href
    } finally {
      sentinel.end()
    }
  }

  return async () => {
    const errors: string[] = []
    for (const _ of makers) {
      const sentinel = makers[next] as (typeof makers)[number]
      next = (next + 1) % makers.length
      try {
        return await ask(sentinel)
      } catch (error) {
        errors.push(`sentinel ${sentinel.shown}: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
    throw new Error(errors.join('; '))
  }
}

function hostOf(url: unknown): string {
  return typeof url === 'string' && URL.canParse(url) ? new URL(url).host : quote(typeof url)
}
