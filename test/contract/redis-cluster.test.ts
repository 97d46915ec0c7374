import { storeContract } from '../../src/testing/store-contract.js'
import { freshCluster } from '../servers/fresh-cluster.js'

const ELSEWHERE = {
  test: 'a run put off that waits for others of its schedule counts against its key once it is due',
  because: 'its key is in another shard, where it stands in line only once it is ready',
}

storeContract({ name: 'redis cluster', open: freshCluster, skip: [ELSEWHERE] })
