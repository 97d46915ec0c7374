-- instances/jobs.lua: what is known of jobs, as JSON (contract: instances.jobs). Keys: jobs. It only looks.
return reply({ jobs = redis.call('HVALS', key('jobs')) })
