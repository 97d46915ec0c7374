-- statement: findDedupe
select run as id, mark from belfry_dedupes where target = :target and dedupe = :dedupe and (until is null or until > :now);

-- statement: openDedupe
insert or replace into belfry_dedupes (target, dedupe, run, mark, until) values (:target, :dedupe, :id, :mark, null);

-- statement: closeDedupe
update belfry_dedupes set until = :until where target = :target and dedupe = :dedupe and run = :run;

-- statement: dropDedupe
delete from belfry_dedupes where target = :target and dedupe = :dedupe and run = :run;
