// Several processes of this program share one file; every tick runs once, in one of them.
// To try it, run it in two terminals.
import { createBelfry } from 'belfry'
import { sqlite } from 'belfry/sqlite'

const belfry = createBelfry({ store: sqlite({ path: process.argv[2] ?? 'belfry.db' }), app: 'shop', signals: true })

const digest = belfry.job('send-digest', {
  exclusive: { by: ['region'] },
  retry: { attempts: 5 },
  run: async ({ payload, tick }) => {
    console.log(`${tick.toISOString()} digest for ${payload.region}, sent by process ${process.pid}`)
  },
})

belfry.schedule('digest/eu', { every: '1s', job: digest, payload: { region: 'eu' } })

await belfry.start()
