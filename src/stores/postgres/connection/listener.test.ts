import { expect, it } from 'vitest'
import type { DirectClient } from './driver.js'
import { Listener } from './listener.js'

it('a payload that cannot be read counts as a hint of all changes', async () => {
  const heard: unknown[] = []
  const handed: unknown[] = []
  let tell: (payload?: string) => void = () => {}
  const client = {
    on(event: string, listener: (message: { readonly payload?: string | undefined }) => void) {
      if (event === 'notification') tell = (payload) => listener({ payload })
    },
    query: async () => ({ rows: [] }),
    connect: async () => {},
    end: async () => {},
  } satisfies DirectClient
  const told = { heard: (changes: unknown) => heard.push(changes), handed: (lease: unknown) => handed.push(lease) }
  await new Listener({ channel: 'belfry_belfry', self: 'me', ...told }).prepare(client)
  for (const payload of ['handed {', 'handed null', 'handed', '', 'nonsense', 'you runs leases', 'me runs', undefined])
    tell(payload)
  const anything = undefined
  expect(heard).toEqual([anything, anything, anything, anything, anything, ['runs', 'leases'], anything])
  expect(handed).toEqual([])
})
