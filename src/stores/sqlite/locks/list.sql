-- statement: listHolders
select * from belfry_holders
where (name > :name or (name = :name and holder > :holder)) and name >= :prefix and name < :beyond and expires_at > :now
order by name, holder limit :limit;
