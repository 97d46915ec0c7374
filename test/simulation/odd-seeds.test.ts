import { describe } from 'vitest'
import { runSeeds } from './seeds.js'

describe('simulated clusters lose no tick, double none, and overlap no committed effects', () => {
  runSeeds(1, 2)
})
