import { expect, it } from 'vitest'
import type { DirectClient } from './direct-connection.js'
import { Listener } from './listener.js'

it('what others send to the channel is at most a hint at everything', async () => {
  const heard: number[] = []
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
  const told = { heard: (bits: number) => heard.push(bits), handed: (lease: unknown) => handed.push(lease) }
  await new Listener({ channel: 'belfry_belfry', self: 'me', ...told }).prepare(client)
  for (const payload of ['handed {', 'handed null', 'handed', '', 'nonsense', 'you 2', 'me 2', undefined]) tell(payload)
  expect(heard).toEqual([31, 31, 31, 31, 31, 2, 31])
  expect(handed).toEqual([])
})
