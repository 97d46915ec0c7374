import { describe, expect, it } from 'vitest'
import { createBelfry, silentLogger } from '../../src/index.js'
import { storeKinds } from '../behaviours/store-kinds.js'

describe.each(storeKinds)('on $name', ({ open }) => {
  it('passes a run unchanged from the store to the thread', async () => {
    const ground = await open()
    const { clock, poll } = ground
    const belfry = createBelfry({
      ...{ store: await ground.handle(), clock, logger: silentLogger, lease: '10m' },
      ...(poll === undefined ? {} : { poll }),
    })
    const job = belfry.job('do', {
      run: new URL('./handlers/do.js', import.meta.url),
      exclusive: { by: ['part'] },
    })
    await belfry.start()
    const { run } = (await job.enqueue({ do: 'tell', part: 7 })) as { run: string }
    const ended = async () => {
      await ground.elapse(100)
      return belfry.runs.get(run)
    }
    const is = {
      state: 'succeeded',
      result: { isMainThread: false, payload: { part: 7 }, run: { id: run, attempt: 1 } },
    }
    await expect.poll(ended, { timeout: 25_000, interval: 20 }).toMatchObject(is)
    await belfry.stop()
    await ground.close()
  })
})
