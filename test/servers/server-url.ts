import { inject } from 'vitest'

export type ServerName = 'postgres' | 'pgbouncer' | 'redis' | 'redis-cluster'

/** The URL of a shared server. The first call for a server starts it. */
export async function serverUrl(name: ServerName): Promise<string> {
  const answer = await fetch(`${inject('servers')}/${name}`)
  const text = await answer.text()
  if (!answer.ok) throw new Error(text)
  return text
}
