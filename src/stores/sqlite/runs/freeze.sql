-- statement: freeze
insert or ignore into belfry_settings (name, value) values ('frozen', :value);

-- statement: thaw
delete from belfry_settings where name = 'frozen';

-- statement: frozen
select value from belfry_settings where name = 'frozen';
