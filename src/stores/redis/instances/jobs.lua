-- instances/jobs.lua: all known jobs, as JSON (contract: instances.jobs). Keys: jobs. It only looks.
return reply({ jobs = redis.call('HVALS', key('jobs')) })
