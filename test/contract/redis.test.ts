import { storeContract } from '../../src/testing/store-contract.js'
import { freshRedis } from '../servers/fresh-redis.js'

const ELSEWHERE = {
  test: 'a run put off that waits for others of its schedule counts against its key once it is due',
  because: 'its key is in another shard, where it stands in line only once it is ready',
}

storeContract({ name: 'redis', open: () => freshRedis() })
storeContract({ name: 'redis in three shards', open: () => freshRedis(3), skip: [ELSEWHERE] })
