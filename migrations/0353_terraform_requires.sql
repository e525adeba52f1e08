-- Terraform services build an image and reach Quarterdeck from their commands, which not every runtime with commands can do.
update service set requires = '{builds,tasks,host-address}' where kind = 'TERRAFORM';
update service set requires = '{builds,tasks}' where kind = 'JOB' and spec -> 'source' -> 'image' is null;
