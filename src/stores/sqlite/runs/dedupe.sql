-- statement: findDedupe
select run from belfry_dedupes where target = :target and dedupe = :dedupe and (until is null or until > :now);

-- statement: openDedupe
insert or replace into belfry_dedupes (target, dedupe, run, until) values (:target, :dedupe, :run, null);

-- statement: closeDedupe
update belfry_dedupes set until = :until where target = :target and dedupe = :dedupe and run = :run;

-- statement: dropDedupe
delete from belfry_dedupes where target = :target and dedupe = :dedupe and run = :run;
