"""Larger requests: several questions in one, a second example, or two versions of an answer."""

from __future__ import annotations

from dataclasses import dataclass

from databuild.sources.demo_text.rng import Rng
from databuild.sources.demo_text.script import Pools, Slots, Text


@dataclass(frozen=True)
class Phrases:
    """What a language needs to ask for more than one thing at once."""

    several: list[Text]
    again: list[Text]
    example: list[Text]
    versions: list[Text]
    version: str


def _phrases(several: str, again: str, example: str, versions: str, version: str) -> Phrases:
    several_, again_, example_, versions_ = (
        [Text(t) for t in p.split("/")] for p in (several, again, example, versions)
    )
    return Phrases(several_, again_, example_, versions_, version)


PHRASES = {
    "en": _phrases(
        "{first} {last} has {k} questions:/[Please answer|Could you answer|I need answers to] these {k} for the {event} in "
        "{city}./My list for {day}, {i_1_28} {month}:/{k} things for {first} in {city}, one after the other./From the "
        "notebook of a {job} in {town}, page {i_2_300}:/[Here come|I have|There are] {k} tasks from {first} {last}./While "
        "{first} is at the {place} in {town}, help me with {k} things./A {job} from {city} wants to know:/Homework of "
        "{first} {last}, {k} parts:/Before the {event} I must clear up {k} points with {first}./Work through these with me, "
        "{first} from {city} is waiting:/For a {shop} in {town}, {k} items:/[Let us|We should] go through {k} questions, says "
        "{first2} {last}./Round {i_2_60} of our quiz in {city}, with {first} and {first2}:",
        "[Please add|Add] a second [example|exercise] of the same kind with its solution, for {first}./ [Afterwards|Then] "
        "{first} would like one more like it, solved as well./ And make up a similar one for {first} {last} to practise, with "
        "the answer./ A further example of this sort would help {first} in {city}.",
        "**[Another one|A second example|One more|For practice].**/[Here is|And now] one more of the same kind:/A similar "
        "one[ for practice|, solved|]:/*[Second exercise|Further example]:*",
        " [Two versions|Give me two versions|Two suggestions], please./ [I would like|Show me] two versions, {first} will "
        "choose./ [Offer|Write] two, so that {first} {last} and I can pick./ One for {first} and one for {first2}, "
        "[please|if possible].",
        "[Version|Suggestion|Option]",
    ),
    "es": _phrases(
        "{k} preguntas de {first}:/{first}, de {city}, quiere saber lo siguiente./Ayúdame con estas {k} tareas para el {day}:/"
        "Mi lista para {first} ({k} puntos):",
        " Añade otro ejemplo resuelto para {first}./ Después, inventa uno parecido, con solución.",
        "**Otro ejemplo.**/Uno parecido:/Para practicar:",
        " Dame dos versiones, por favor./ Quiero dos versiones; {first} elegirá.",
        "Versión",
    ),
    "de": _phrases(
        "{k} Fragen von {first}:/{first} aus {city} möchte Folgendes wissen./Hilf mir bei diesen {k} Aufgaben bis {day}:/"
        "Meine Liste für {first} ({k} Punkte):",
        " Bitte noch ein gelöstes Beispiel für {first}./ Danach eine ähnliche Aufgabe mit Lösung, bitte.",
        "**Noch ein Beispiel.**/Eine ähnliche Aufgabe:/Zum Üben:",
        " Bitte zwei Fassungen./ Ich hätte gern zwei Fassungen, {first} wählt dann aus.",
        "Fassung",
    ),
    "fr": _phrases(
        "{k} questions de {first} :/{first}, de {city}, voudrait savoir ceci./Aide-moi avec ces {k} tâches pour {day} :/"
        "Ma liste pour {first} ({k} points) :",
        " Ajoute un autre exemple résolu pour {first}./ Ensuite, invente un exercice semblable avec sa solution.",
        "**Un autre exemple.**/Un exercice semblable :/Pour s'entraîner :",
        " Deux versions, s'il te plaît./ Je voudrais deux versions ; {first} choisira.",
        "Version",
    ),
    "pt": _phrases(
        "{k} perguntas de {first}:/{first}, de {city}, quer saber o seguinte./Ajuda-me com estas {k} tarefas até {day}:/"
        "A minha lista para {first} ({k} pontos):",
        " Junta outro exemplo resolvido para {first}./ Depois, inventa um parecido, com solução.",
        "**Outro exemplo.**/Um parecido:/Para praticar:",
        " Duas versões, por favor./ Quero duas versões; {first} escolhe.",
        "Versão",
    ),
    "tr": _phrases(
        "{k} soru, soran {first}:/{first} ({city}) şunları öğrenmek istiyor./{day} gününe kadar şu {k} konuda yardım et:/"
        "Listemde {k} madde var, {first} bekliyor:",
        " Bir de çözümlü başka bir örnek ekle, {first} çalışacak./ Sonra benzer bir soruyu çözümüyle yaz.",
        "**Bir örnek daha.**/Benzer bir soru:/Alıştırma için:",
        " İki farklı biçimde yaz lütfen./ İki seçenek istiyorum, {first} birini seçecek.",
        "Seçenek",
    ),
    "ru": _phrases(
        "Вопросы ({k}), задаёт {first}:/{first} (город {city}) хочет узнать следующее./Помогите с этими задачами, их {k}, нужно "
        "в {day}:/Мой список, {first} ждёт, пунктов {k}:",
        " Добавьте ещё один пример с решением, его прочтёт {first}./ Затем придумайте похожую задачу с решением.",
        "**Ещё один пример.**/Похожая задача:/Для тренировки:",
        " Напишите, пожалуйста, два варианта./ Нужны два варианта, {first} выберет.",
        "Вариант",
    ),
    "ar": _phrases(
        "أسئلة من {first}، وعددها {k}:/يريد {first} من مدينة {city} معرفة ما يلي./"
        "ساعدني في هذه المهام قبل يوم {day}، وعددها {k}:/قائمتي إلى {first}، وعدد النقاط {k}:",
        " أضف مثالا آخر محلولا من أجل {first}./ ثم اكتب مسألة مشابهة مع حلها.",
        "**مثال آخر.**/مسألة مشابهة:/للتدريب:",
        " اكتب صيغتين من فضلك./ أريد صيغتين، وسيختار {first} إحداهما.",
        "الصيغة",
    ),
    "hi": _phrases(
        "{first} के {k} प्रश्न:/{city} की {first} यह जानना चाहती है।/{day} तक इन {k} कामों में मदद कीजिए:/"
        "मेरी सूची में {k} बातें हैं, {first} राह देख रही है:",
        " {first} के लिए हल सहित एक और उदाहरण जोड़िए।/ फिर ऐसा ही एक और प्रश्न हल सहित लिखिए।",
        "**एक और उदाहरण।**/ऐसा ही एक प्रश्न:/अभ्यास के लिए:",
        " कृपया दो रूप लिखिए।/ दो रूप चाहिए, {first} एक चुनेगी।",
        "रूप",
    ),
    "zh": _phrases(
        "{first}有{k}个问题：/{city}的{first}想知道下面这些。/请在{day}之前帮我完成这{k}项：/给{first}的清单，共{k}条：",
        "请再给{first}出一道类似的例子，并附上解答。/然后再写一个类似的题目和答案。",
        "**再举一例。**/类似的题目：/练习：",
        "请给我两个版本。/我想要两个版本，让{first}来选。",
        "版本",
    ),
    "ja": _phrases(
        "{first}さんからの質問が{k}つあります。/{city}の{first}さんが次のことを知りたがっています。/{day}までに、この{k}つを手伝ってください。/"
        "{first}さんのための一覧、全部で{k}つです。",
        "{first}さんのために、似た例をもう一つ、答えも付けてください。/そのあと、似た問題を答えと一緒に作ってください。",
        "**もう一つの例。**/似た問題：/練習用：",
        "二通り書いてください。/二つの案がほしいです。{first}さんが選びます。",
        "案",
    ),
}


def _item(mark: str, text: str) -> str:
    # A list, table or code block needs a line of its own.
    return mark.rstrip() + "\n" + text if text.startswith(("1. ", "- ", "|", "```", "#", "[")) else mark + text


def several(rng: Rng, language: str, pools: Pools, parts: list[list[str]]) -> list[str]:
    """Return one question made of several, numbered, and one answer with the same numbers."""
    slots = Slots(rng, pools)
    slots["k"] = len(parts)
    lead = rng.pick(PHRASES[language].several).render(slots)
    mark = rng.pick(("{}. ", "{}) ", "({}) ", "**{}.** "))
    asked, answered = (
        "\n\n".join(_item(mark.format(number), part[side]) for number, part in enumerate(parts, 1)) for side in (0, 1)
    )
    return [f"{lead}\n\n{asked}", answered]


def second_example(rng: Rng, language: str, pools: Pools, first: list[str], second: list[str]) -> list[str]:
    """Return the question with a wish for another of its kind, and both answers."""
    slots, phrases = Slots(rng, pools), PHRASES[language]
    wish, head = rng.pick(phrases.again).render(slots), rng.pick(phrases.example).render(slots)
    gap = "" if wish.startswith(" ") or language in ("zh", "ja") else " "
    return [f"{first[0]}{gap}{wish}", f"{first[1]}\n\n{head} {second[0]}\n\n{second[1]}"]


def two_versions(rng: Rng, language: str, pools: Pools, turns: list[str]) -> list[str]:
    """Return the question with a wish for two versions, and the two answers that follow it under a heading each."""
    slots, phrases = Slots(rng, pools), PHRASES[language]
    head = Text(phrases.version).render(slots)
    wish = rng.pick(phrases.versions).render(slots)
    return [turns[0] + wish, "\n\n".join(f"**{head} {n}**\n\n{text}" for n, text in enumerate(turns[1:], 1))]
