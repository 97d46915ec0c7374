// A CPU-bound job runs in its own thread: the main thread stays free, here to print a line ten times a second.
import { createBelfry } from 'belfry'
import { sqlite } from 'belfry/sqlite'

const belfry = createBelfry({ store: sqlite({ path: process.argv[2] ?? 'belfry.db' }), app: 'shop', signals: true })

const primes = belfry.job('count-primes', {
  run: new URL('./count-primes.js', import.meta.url),
  timeout: '1m',
})

belfry.schedule('primes', { every: '1s', job: primes, payload: { below: 500_000 } })
belfry.on('run:succeeded', ({ result }) => console.log(`there are ${result} primes`))

await belfry.start()
setInterval(() => console.log('the main thread is free'), 100)
