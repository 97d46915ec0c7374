import { storeContract } from '../../src/testing/store-contract.js'
import { freshCluster } from '../servers/fresh-cluster.js'

storeContract({ name: 'redis cluster', open: freshCluster })
