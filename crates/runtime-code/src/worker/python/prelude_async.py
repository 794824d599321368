import asyncio as _skillz_asyncio
async def _skillz_value(value):
    return value
async def _skillz_open(future):
    reply = await future
    if reply[0]:
        return reply[1]
    raise RuntimeError(reply[1])
def _skillz_future(value):
    if value is None or isinstance(value, (str, int, float, list, dict, tuple)):
        return _skillz_value(value)
    return value
def _skillz_task(value, name=None, context=None):
    return _skillz_future(value)
def _skillz_gather(*items, **options):
    return _skillz_asyncio.gather(*[_skillz_future(item) for item in items], **options)
