-- statement: forgetInstance
delete from belfry_instances where id = :instance;
