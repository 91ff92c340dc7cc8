"""German topics."""

from __future__ import annotations

from databuild.sources.demo_text.languages import language

POOLS = """
first: Anna, Jonas, Lena, Paul, Greta, Felix, Marie, Emil, Frieda, Karl, Ida, Oskar, Johanna, Theo, Klara, Anton,
  Heike
city: Leipzig, Graz, Basel, Bremen, Linz, Freiburg, Kiel, Erfurt, Salzburg, Aachen, Bern, Potsdam, Ulm, Jena, Lübeck
thing: Hefte, Kerzen, Gläser, Teller, Bücher, Tassen, Lampen, Pinsel, Decken, Körbe, Stühle, Schrauben
object: eine alte Taschenuhr, einen silbernen Schlüssel, eine Spieldose, einen roten Schirm, einen Kompass,
  eine zerrissene Karte, eine Geige, einen Brief ohne Absender
animal: eine graue Katze, ein Storch, ein alter Hund, eine Schildkröte, ein Esel, eine Eule, ein Fuchs, eine Schwalbe
place: am Bahnhof, am Hafen, vor der Bibliothek, an der Mühle, auf dem Marktplatz, am Leuchtturm, vor dem Theater, im
  Park
dish: Kartoffelsuppe, Linseneintopf, Gemüsereis, Apfelkuchen, Spinatknödel, Kürbissuppe, Bohnensalat, Käsespätzle
day: Montag, Dienstag, Mittwoch, Donnerstag, Freitag, Samstag, Sonntag
fact: Photosynthese=der Vorgang, mit dem Pflanzen aus Licht, Wasser und Kohlendioxid Zucker herstellen |
  ein Regenbogen=Sonnenlicht, das von Regentropfen in seine Farben zerlegt wird | Inflation=das allgemeine Steigen der
  Preise im Lauf der Zeit | ein Algorithmus=eine genaue Folge von Schritten, die eine Art von Aufgaben löst |
  Ebbe und Flut=das regelmäßige Sinken und Steigen des Meeres, vor allem durch die Anziehung des Mondes |
  eine Metapher=ein Bild, das eine Sache mit dem Namen einer anderen benennt | eine Mondfinsternis=der Weg des Mondes
  durch den Schatten der Erde | eine Primzahl=eine Zahl größer als eins, die nur durch eins und sich selbst teilbar
  ist
pair: Where is the station?=Wo ist der Bahnhof? | I arrive on May {i_2_28}.=Ich komme am {i_2_28}. Mai an. |
  {first} lives in {city}.={first} wohnt in {city}. | The train leaves at {i_5_11}.=Der Zug fährt um {i_5_11} Uhr. |
  We need {i_5_40} chairs.=Wir brauchen {i_5_40} Stühle. | It is raining today.=Heute regnet es. |
  My room is number {i_100_900}.=Mein Zimmer hat die Nummer {i_100_900}. | Thank you for the letter.=Danke für den
  Brief.
good: Die Beratung in {city} war ausgezeichnet. | Alles kam nach {i_2_9} Tagen heil an. | {first} hat mir sehr
  freundlich
  geholfen. | Ich würde es sofort wieder kaufen.
bad: Nach {i_2_20} Tagen war es kaputt. | Ich habe {i_30_90} Minuten gewartet und niemand kam. | Der Laden in {city}
  antwortet nicht. | Es riecht schlecht und hat {i_40_300} Euro gekostet.
labels: positiv, negativ
"""

SCRIPT = """
@ shop shop
? {first} kauft {n} {thing} zu je {p} Euro und bezahlt mit {b} Euro. Wie viel Rückgeld gibt es?
? Ich habe in {city} {n} {thing} für je {p} Euro gekauft und {b} Euro gegeben. Was bekomme ich zurück?
= Zuerst der Gesamtpreis: {n} · {p} = {t} Euro. Dann das Rückgeld: {b} - {t} = {c}. [Es sind|Man bekommt] **{c} Euro**
  zurück.
= {c} Euro. [Die Rechnung dazu|Gerechnet wird so]: {n} · {p} = {t}, und {b} - {t} = {c}.
> Und was kostet ein einzelnes Stück?
< Ein Stück kostet {p} Euro.
@ travel travel
? Ein Zug fährt von {city} aus {h} Stunden lang mit {v} km/h und danach noch {left} km. Wie weit kommt er?
? {first} ist {h} Stunden mit durchschnittlich {v} km/h unterwegs, dann folgen {left} weitere Kilometer. Wie viele
  sind es
  insgesamt?
= In {h} Stunden sind es {v} · {h} = {km} km. Mit den übrigen {left} km ergibt das {km} + {left} = **{all} km**.
@ area area
? Ein Garten in {city} ist {a} m lang und {b} m breit. Wie groß sind Fläche und Umfang?
? {first} möchte ein rechteckiges Feld von {a} m mal {b} m einzäunen. Berechne Umfang und Fläche.
= Fläche: {a} · {b} = {area} m². Umfang: 2 · ({a} + {b}) = 2 · {sum} = {per} m.
@ fact fact
? Was ist das: {term}? Bitte ein Satz für ein Kind von {i_6_12} Jahren aus {city}.
? {first} aus {city} hat mich nach dem Begriff „{term}“ gefragt. Was antworte ich am besten?
? Erkläre kurz „{term}“ und gib {first} einen Rat, wie man es sich in {i_2_9} Tagen merkt.
= [Kurz gesagt|Eine kurze Antwort]: „{term}“ bedeutet: {what}. [Zum Merken hilft es|Am besten ist es], das Ganze zu
  zeichnen
  und jemandem zu erklären, zum Beispiel {first2}.
= Gemeint ist {what}. [Danach lohnt es sich|Es hilft auch], {place} nach einem Beispiel zu suchen.
@ story
? Schreibe eine kurze Geschichte über {first} in {city}; ein Tier soll vorkommen.
? Erzähl mir ein Märchen, das in {city} spielt, mit {first} und {first2}.
= [In jener Nacht|An einem Wintermorgen|Vor {i_20_90} Jahren] fand {first} in {city} {object}. [Niemand wusste, wem
  das
  gehörte|Es lag {place}, als hätte es gewartet]. Da kam {animal} und [setzte sich daneben|blickte ohne Angst
  herüber].
  [Gemeinsam gingen sie|Sie folgten dem Fluss] {i_2_9} Stunden lang. Am Ende öffnete {first2} die Tür und sagte:
  „[Da seid
  ihr ja endlich|Ich habe euch erwartet].“ [Seitdem|Von da an] gibt es dort jeden {day} {dish}.
@ letter
? Schreib eine E-Mail an {first}: Ich kann am {day} nicht kommen und schlage einen anderen Termin vor.
? Ich brauche eine freundliche Nachricht an {first} in {city}, um unser Treffen am {day} zu verschieben.
= Hallo {first},¶¶[leider|es tut mir leid, aber] am {day} kann ich nicht kommen. [Passt es dir|Geht es bei dir]
  stattdessen am
  {day2} um {i_8_19} Uhr {place}? [Sonst schlag gern etwas anderes vor|Ein anderer Tag ist mir auch recht].¶¶[Viele
  Grüße|Herzliche Grüße]¶{first2}
@ recipe
? Wie macht man {dish} für {i_2_9} Personen?
? {first} will am {day} {dish} kochen. Welche Schritte sind nötig?
= 1. Die Zutaten für {dish} bereitlegen ({i_2_9} Personen).¶2. [Alles waschen|Alles putzen] und klein schneiden.¶3.
  Bei
  [schwacher|mittlerer] Hitze {i_15_50} Minuten garen.¶4. Mit Salz, Öl und [etwas Zitrone|frischen Kräutern]
  abschmecken.
  ¶¶[Noch {i_5_15} Minuten ruhen lassen|Sofort servieren]. Guten Appetit!
@ review review
? Ist diese Bewertung positiv oder negativ? „{review}“ Antworte mit einem Wort.
! [{label}|Sie ist {label}.]
? Ordne die Meinung ein (positiv oder negativ) und begründe: {review}
! Sie ist {label}; das zeigt die Aussage „{text}“ deutlich.
@ translate pairs
? Übersetze ins Deutsche: {en}
? What is this in German? {en}
= {own}
= [Auf Deutsch|In German]: „{own}“
"""

TOPICS = language("de", POOLS, SCRIPT)
