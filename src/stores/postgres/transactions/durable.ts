import { WRONG_ISOLATION } from '../connection/errors.js'
import { step } from '../connection/sql-function.js'

/**
 * How every operation begins. What is acknowledged must survive a crash, also where somebody chose otherwise for their
 * own writes. And each statement must see what was committed while the one before it waited: behind a pooler others may
 * have left their isolation level on the connection. Inside of a transaction of the caller's it is the caller's choice.
 */
export const DURABLE_FUNCTION = step(
  'durable(v_inside boolean default false)',
  'void',
  `
begin
  if not v_inside and current_setting('transaction_isolation') not like 'read %committed' then
    raise exception 'an operation of Belfry cannot run at the isolation level %',
      current_setting('transaction_isolation') using errcode = '${WRONG_ISOLATION}';
  end if;
  if current_setting('synchronous_commit') = 'off' then perform set_config('synchronous_commit', 'on', true); end if;
end`,
)

/** The same for what is called so often that even a call counts. */
export const DURABLE = `if current_setting('synchronous_commit') = 'off'
    or current_setting('transaction_isolation') <> 'read committed' then perform belfry.durable(); end if;`
